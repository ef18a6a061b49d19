"""What is done about agents that can't or don't go on: one small decision for each policy of the fleet file."""
