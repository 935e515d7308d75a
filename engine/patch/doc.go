// Package patch changes what a package renders for one custom resource, as long as
// a Patch (operetta.dev) says so: for the hour in which an incident cannot wait for
// a change of the package. It is pure: it reads and writes no cluster.
//
//	Parse   a Patch as the API server returned it -> Patch
//	Apply   rendered components + patches -> changed components, a Report for each patch
//	Status  Report -> the status of the Patch
//	CRD     the definition of the kind
//
// It works between evaluation and stamping. The digest, the owner and the repair of
// drift therefore are those of the changed object, and without the patch the object
// is the package's again, by one write.
//
// A patch that does not fit is reported and left out. It stops nothing: neither the
// other changes of the same patch, nor other patches, nor the resource.
package patch
