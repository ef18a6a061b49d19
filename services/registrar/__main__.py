"""Wiring only."""

import sys

from registry import RegistryFile
from services.registrar.service import Registrar
from shared.runtime.bootstrap import ServiceContext, serve
from shared.system.files import watch


def build(wiring: ServiceContext) -> Registrar:
    file = RegistryFile(wiring.fleet.registry)
    watch(file.path, wiring.nudge)
    return Registrar(wiring.fleet_file, file, wiring.journal, wiring.log)


def main() -> int:
    return serve(Registrar.name, build)


if __name__ == "__main__":
    sys.exit(main())
