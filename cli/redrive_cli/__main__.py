"""`python -m redrive_cli` is `redrive`."""

from redrive_cli.main import main

if __name__ == "__main__":
    main()
