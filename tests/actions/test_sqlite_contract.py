"""The embedded store keeps the contract of every store."""

from tests.actions import store_contract, store_contract_sessions


class TestActions(store_contract.ActionsContract):
    pass


class TestKeys(store_contract.KeysContract):
    pass


class TestLogs(store_contract.LogsContract):
    pass


class TestSessions(store_contract_sessions.SessionsContract):
    pass


class TestResume(store_contract_sessions.ResumeContract):
    pass


class TestListings(store_contract_sessions.ListingsContract):
    pass


class TestTransactions(store_contract_sessions.TransactionsContract):
    pass


class TestRetention(store_contract_sessions.RetentionContract):
    pass


class TestCallbacks(store_contract_sessions.CallbacksContract):
    pass


class TestSharedCommit(store_contract_sessions.SharedCommitContract):
    pass
