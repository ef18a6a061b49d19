"""Random faults on a real fleet, and a checker that reads only what a user could see, and the journal."""
