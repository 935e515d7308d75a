package cluster

// FieldManager is the name under which the engine owns fields. It is part of the
// product's contract: another name would orphan every field written before.
const FieldManager = "operetta"

// HandOverManager is the field manager of fields that the engine has handed over.
const HandOverManager = FieldManager + "-relinquished"

// DryRunFieldManager is the field manager of a custom resource that a dry run applies to a server.
const DryRunFieldManager = FieldManager + "-dry-run"

// OfEngine reports whether a field manager is the engine, which has one for each purpose.
func OfEngine(manager string) bool {
	return manager == FieldManager || manager == HandOverManager || manager == DryRunFieldManager || manager == finalizerManager
}

// finalizerManager is the field manager for the finalizers of resources. It is not FieldManager,
// because a resource may be an object of another resource, and an apply with only finalizers would
// remove the spec.
const finalizerManager = FieldManager + "-finalizer"
