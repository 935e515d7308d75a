// Package patch changes what a package renders for one custom resource, as long as a
// Patch (operetta.dev) exists. It is meant for incidents that cannot wait for a change of
// the package. It is pure: it reads and writes no cluster.
//
//	Parse   a Patch as the API server returned it -> Patch
//	Apply   rendered components + patches -> changed components, a Report for each patch
//	Status  Report -> the status of the Patch
//	CRD     the definition of the kind
//
// Patches are applied after evaluation and before stamping. So digest, owner and drift
// repair are those of the changed object, and one write restores the package's object
// when the patch is deleted.
//
// A change that does not fit is reported and left out. It stops neither the other changes
// of the same patch, nor other patches, nor the resource.
package patch
