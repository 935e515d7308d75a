package cluster

import "time"

// All timing of the package is here; docs/timing.md has a table of it.

// Reads.
const (
	// ownWritesTimeout is how long a read waits for the cache to see what this process wrote. That
	// takes milliseconds, and forever if the label that the cache selects by was removed.
	ownWritesTimeout = 3 * time.Second
	// schemasFresh is how long the published types of an API are used before they are read
	// again: a definition may be changed at any time.
	schemasFresh = time.Minute
	// schemasAgain is how long it is remembered that they could not be read.
	schemasAgain = 10 * time.Second
	// schemasPatience is how long an object waits for them: they only make an error clearer.
	schemasPatience = 5 * time.Second
	// mappingsFresh is how long the scope and path of a kind are used before they are looked up again:
	// its definition may be deleted and installed with others.
	mappingsFresh = time.Minute
	// mappingsAgain is how often everything is discovered anew at most because the path of a kind is unknown to
	// the API server: its definition is gone, or was installed again with another scope.
	mappingsAgain = 5 * time.Second
	// kindsFresh is how long the kinds that are served, or an error instead, are used for objects whose kind is
	// not served: the objects of many resources go with one definition.
	kindsFresh = 5 * time.Second
	// kindsPatience is how long such an object waits for them.
	kindsPatience = 30 * time.Second
	// ownedFresh is how long a list of the objects of all owners is used for resources that have lost their
	// inventories, and within which time the second such resource has all of them listed.
	ownedFresh = 10 * time.Second
)
