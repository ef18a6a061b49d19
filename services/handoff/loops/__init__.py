"""What is made of what was seen: one pure decision each."""
