"""The traffic words that are shipped."""

from lineproof.core.traffic.catalogue import Catalogue
from support.paths import VARIABLES

CATALOGUE = Catalogue.read(VARIABLES / "profiles")
