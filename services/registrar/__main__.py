"""Wiring only."""

import sys

from registry import RegistryFile
from services.registrar.service import Registrar
from shared.runtime.bootstrap import ServiceContext, serve
from shared.system.files import watch


def build(context: ServiceContext) -> Registrar:
    file = RegistryFile(context.fleet.registry)
    watch(file.path, context.nudge)
    return Registrar(context.fleet_file, file, context.journal, context.log)


def main() -> int:
    return serve(Registrar.name, build)


if __name__ == "__main__":
    sys.exit(main())
