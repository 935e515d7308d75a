package vet

import "operetta.dev/engine/fault"

// A rule is one thing that vet looks for. It is in the file of its name, as the function of its name.
type rule struct {
	name string
	// example is an archive in testdata with a package in which it finds something.
	example string
	// find returns what the rule finds. A fault has the code [fault.Invalid], unless the evaluation
	// of the package has found it.
	find func(v *view) fault.Faults
}

// faultRules find what is wrong with a package, whatever the custom resource.
var faultRules = []rule{
	{"references", "a-reference-to-a-component-object-or-output-that-does-not-exist", references},
	{"imports", "a-name-that-an-imported-package-does-not-have", imports},
	{"self_references", "a-value-that-is-made-of-itself", selfReferences},
	{"edges", "an-edge-to-a-component-that-does-not-exist", edges},
	{"hook_edges", "a-hook-that-depends-on-something", hookEdges},
	{"cycles", "a-cycle-of-edges", cycles},
	{"unset", "a-field-that-nobody-sets", unset},
	{"self_waits", "a-component-that-waits-for-its-own-objects", selfWaits},
	{"duplicates", "an-object-that-is-rendered-twice", duplicates},
	{"reach", "an-object-outside-the-namespace", reach},
	{"attributes", "attributes-that-are-misspelled", attributes},
	{"untrusted", "what-a-tenant-chooses", untrusted},
	{"defaults", "a-default-that-does-not-fit", defaults},
	{"comparisons", "a-comparison-of-values-that-are-never-equal", comparisons},
	{"patchable", "a-field-that-no-patch-changes", patchable},
}

// warningRules find what is valid, and probably a mistake.
var warningRules = []rule{
	{"copies", "a-secret-that-is-copied-is-warned-of", copies},
	{"growth", "what-grows-without-a-limit-is-warned-of", growth},
	{"enumerations", "an-enumeration-with-very-many-values-is-warned-of", enumerations},
	{"missing_stars", "a-default-without-its-star-is-warned-of", missingStars},
	{"booleans", "a-field-that-yaml-reads-as-a-boolean-is-warned-of", booleans},
	{"versions", "a-version-that-is-served-no-more-is-warned-of", versions},
	{"computed_names", "a-name-of-a-component-that-is-computed-is-warned-of", computedNames},
	{"other_packages", "a-file-of-another-package-is-warned-of", otherPackages},
	{"hidden_parts", "a-hidden-component-is-warned-of", hiddenParts},
	{"unfollowed", "names-that-lead-too-far", unfollowed},
}

// questionRules find what the author has to provide, because only a cluster would know it.
var questionRules = []rule{
	{"scopes", "a-kind-whose-scope-is-unknown", scopes},
}
