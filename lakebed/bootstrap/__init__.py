"""One module per kind of process: picks the backends and hands them to the services. What deployed
programs need lies in `functions` and `tasks`."""
