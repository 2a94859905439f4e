"""Everything that is said of an aggregate, in one table: names, types, what is measured, how it is finished."""
