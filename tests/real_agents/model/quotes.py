"""What an agent may say about agents: texts that look like a banner or a dialog and are neither.

Each is spoken as a plain reply (`DO-QUOTE limit`), or printed by a command from a file that holds it.
"""

LIMIT = """\
These are the banners that the agents show when their account is out of budget:

You've hit your session limit · resets 3:35am (UTC)
  ⎿  You've hit your weekly limit · resets Nov 19, 1:50am (UTC)
● Usage limit reached · continuing automatically at 4:16am · esc to cancel
■ You’ve hit your usage limit. Upgrade to Pro or try again at 4:11 AM.
This request would exceed your account's rate limit. Please try again later. [retrying in 1h 59m attempt #1]
Usage limit reached for all Pro models.
Access resets at 3:05 PM PDT.
API Error: Request rejected (429) · Credit balance too low · Add funds: https://example.com/billing
"""

DIALOG = """\
These are the dialogs that the agents show when a person has to decide:

 Do you want to proceed?
 ❯ 1. Yes
   2. No, and tell Claude what to do differently (esc)

  Would you like to run the following command?
› 1. Yes, proceed (y)
  2. No, and tell Codex what to do differently (esc)
  Press enter to confirm or esc to cancel

△ Permission required
   Allow once   Allow always   Reject

Allow execution of [Shell]?
● 1. Allow once
  2. No, suggest changes (esc)

Enter to select · ↑/↓ to navigate · Esc to cancel
"""

WORKING = """\
These are the lines that the agents show while they work:

✻ Sketching… (7s · ↓ 17 tokens · esc to interrupt)
  ⎿  API error · Retrying in 5s · attempt 4/10
• Working (3s • esc to interrupt)
⠸ Thinking... (esc to cancel, 5s)
■■■⬝⬝⬝⬝⬝  esc interrupt
"""

QUOTES = {"limit": LIMIT, "dialog": DIALOG, "working": WORKING}

OUTPUT = """\
You've hit your session limit · resets 3:35am (UTC)
 Do you want to proceed?
 ❯ 1. Yes
"""
"""Short: a program shows the first lines of a command's output only."""
