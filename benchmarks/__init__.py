"""Measurements that are run by hand."""

import mira_site as mira_site  # before numpy, which reads what it sets
