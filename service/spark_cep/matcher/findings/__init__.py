"""What both engines share: partial matches, findings, and the results made of them."""
