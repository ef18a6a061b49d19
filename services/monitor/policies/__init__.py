"""What is done about agents that can't or don't go on: one pure decision for each policy of the fleet file."""
