#!/bin/sh
# The smallest plugin that a host accepts: protocol 1.1, one tool that answers its one call.
# It knows the ids that a host counts from: 0 for initialize, then up.
read -r _ || exit 0
echo '{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"Method not found"}}'
read -r _ || exit 0
echo '{"jsonrpc":"2.0","id":1,"result":{"name":"small","version":"1.0","description":"d","tools":[{"name":"ping","description":"p","parameters":[]}]}}'
id=2
while read -r _; do
    echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"success\":true,\"data\":\"pong\"}}"
    id=$((id + 1))
done
