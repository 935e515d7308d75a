package vet

import "operetta.dev/engine/fault"

// A rule is one thing that vet looks for. It is in the file of its name, as the function of its name.
type rule struct {
	name string
	// finds says what the rule finds.
	finds string
	// example is an archive in testdata with a package in which it finds something.
	example string
	// find returns what the rule finds. A fault has the code [fault.Invalid], unless the evaluation
	// of the package has found it.
	find func(v *view) fault.Faults
}

// faultRules find what is wrong with a package, whatever the custom resource.
var faultRules = []rule{
	{"references", "names of components, objects, outputs, inputs and fields that do not exist", "a-reference-to-a-component-object-or-output-that-does-not-exist", references},
	{"imports", "names that an imported package does not have", "a-name-that-an-imported-package-does-not-have", imports},
	{"self_references", "values that are made of themselves", "a-value-that-is-made-of-itself", selfReferences},
	{"edges", "dependsOn a component that does not exist, or on the component itself", "an-edge-to-a-component-that-does-not-exist", edges},
	{"hook_edges", "dependsOn in a hook", "a-hook-that-depends-on-something", hookEdges},
	{"cycles", "components that wait for each other", "a-cycle-of-edges", cycles},
	{"unset", "fields that nothing sets", "a-field-that-nobody-sets", unset},
	{"self_waits", "components that wait for their own objects", "a-component-that-waits-for-its-own-objects", selfWaits},
	{"duplicates", "objects that are rendered twice", "an-object-that-is-rendered-twice", duplicates},
	{"reach", "objects and inputs beyond the reach of the package", "an-object-outside-the-namespace", reach},
	{"attributes", "misspelled attributes, which CUE ignores", "attributes-that-are-misspelled", attributes},
	{"untrusted", "kinds, accounts, roles and the like that a tenant chooses", "what-a-tenant-chooses", untrusted},
	{"defaults", "defaults that CUE drops, or that widen their type", "a-default-that-does-not-fit", defaults},
	{"comparisons", "== between values that are never equal", "a-comparison-of-values-that-are-never-equal", comparisons},
	{"patchable", "fields that are opened to Patches, and that a Patch never changes", "a-field-that-no-patch-changes", patchable},
}

// warningRules find what is valid, and probably a mistake.
var warningRules = []rule{
	{"copies", "content of Secrets that is copied to where more people may read it", "a-secret-that-is-copied-is-warned-of", copies},
	{"growth", "work whose amount a user decides", "what-grows-without-a-limit-is-warned-of", growth},
	{"enumerations", "enumerations with so many values that an evaluation takes long", "an-enumeration-with-very-many-values-is-warned-of", enumerations},
	{"missing_stars", "values that look like defaults, and are none", "a-default-without-its-star-is-warned-of", missingStars},
	{"booleans", "names of fields that YAML reads as booleans", "a-field-that-yaml-reads-as-a-boolean-is-warned-of", booleans},
	{"versions", "versions of Kubernetes' kinds that are served no more", "a-version-that-is-served-no-more-is-warned-of", versions},
	{"unfollowed", "values with too many references for the rule untrusted", "names-that-lead-too-far", unfollowed},
}

// questionRules find what the author has to provide, because only a cluster would know it.
var questionRules = []rule{
	{"scopes", "custom kinds that may be namespaced or cluster-scoped", "a-kind-whose-scope-is-unknown", scopes},
}
