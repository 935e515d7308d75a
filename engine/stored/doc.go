// Package stored says whether the resources that a cluster has stored outlive another definition of their kind.
//
// Check compares two definitions. Only if the next one is narrower, it lists the resources in pages, and stops at the first one that
// would lose a field or has a value that the next definition refuses and the present one does not. It writes nothing, and a resource
// that is written at the same time may escape it.
package stored
