from tests.roles.owned_database import owned

__all__ = ["owned"]
