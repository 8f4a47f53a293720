"""The emulator of AWS's services, its clients, and the time that it runs by."""
