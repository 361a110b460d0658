"""What the checks of both HTTP sides share: requests with evidence, and streams of events."""
