"""Wiring only."""

import sys

from registry import RegistryFile
from services.registrar.service import Registrar
from shared.process import Wiring, serve


def build(wiring: Wiring) -> Registrar:
    return Registrar(RegistryFile(wiring.fleet.registry))


def main() -> int:
    return serve(Registrar.name, build)


if __name__ == "__main__":
    sys.exit(main())
