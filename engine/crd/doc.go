// Package crd turns the CUE schema of a custom resource into a
// CustomResourceDefinition.
//
//	crd, err := crd.Generate(crd.CustomResource{
//		Group: "example.com", Kind: "WebShop",
//		Versions: []crd.Version{{Name: "v1", Spec: spec, Served: true, Storage: true}},
//	})
//	text, err := crd.YAML(crd)
//
// Generate is a pure function: the same definition gives the same bytes. Under the
// generated CRD, the API server accepts exactly what CUE accepts. If a structural schema
// cannot express the CUE, Generate does not fall back to something weaker: it fails with
// [fault.Faults], every fault of all versions, each with its path, its file:line
// and a suggestion.
//
// The package loads no files, talks to no cluster and does not convert between versions: as long
// as nobody does, only the storage version is served (conversion.go).
// It does not run the API server's own validation either; package conform does. CEL rules
// need that: the server rejects a rule whose estimated cost is too high, for example one
// over all strings of a list of lists.
//
// # How a field is read
//
//	image!:   string         required, no default
//	env?:     ...            optional, no default
//	replicas: int | *1       default 1, not required
//	storage:  string         required: CUE does not accept its absence either
//	tls: {on: bool | *false} default {}, not required, because every field has a default;
//	                         the default is written in full if a rule reads it
//
// # Constraints over several fields
//
// A few forms become CEL rules that say exactly the same; translate.go has them. Any other one is
// a fault. GenerateWithRules also returns what it has made, [RemoveCostlyRules] removes what the API
// server finds too costly, and [Constraints] lists who enforces what.
//
// # Limits by default
//
// A list has at most 256 items and a map at most 256 fields, or 32 if it is inside another
// list or map. A string has at most 32768 characters, or 16384 inside a list or map. A limit
// of the author takes precedence, also a higher one: strings.MaxRunes, list.MaxItems,
// struct.MaxFields. limit.go has the numbers and the reasons. Numbers get no limit: a
// maximum would change their meaning.
//
// # What an author can add
//
// CUE cannot express a few features of Kubernetes. They are written in a @crd attribute
// on the field, on the definition that it refers to, or inside its struct:
//
//	@crd(preserveUnknownFields)                  keep fields that the schema does not declare
//	@crd(immutable)                              CEL rule self == oldSelf
//	@crd(listType=map, listMapKey=name)          how server-side apply merges a list
//	@crd(rule="self.a <= self.b", message="…")   any CEL rule
//
// # Where CUE and the API server still differ
//
// The API server drops a null that is not valid instead of rejecting it. It drops unknown
// fields for clients that do not ask for strict validation; kubectl asks for it. A list
// with listType=map rejects two elements with the same key. A quantity (number | =~…) that
// is a fraction has to be written as a string. Bytes are base64 text in JSON, so the
// caller has to decode them before it gives a custom resource to CUE.
//
// # Why this package does not use CUE's encoders
//
// Three encoders exist in cuelang.org/go v0.17.1 and were measured: openapi with
// ExpandReferences overflows the stack on recursive definitions and refuses bounded
// numbers with defaults; openapi without it refuses defaults through references, and
// drops matchN and conditional fields silently; jsonschema drops defaults.
// An experiment showed that cue.Value.Eval followed by Expr yields every scalar as a
// disjunction of conjunctions of basic types, bounds and validators, whatever the
// spelling and however many references lie between. So scalars are read from the
// evaluated value (scalar.go). Lists and structs are not: evaluation loses a validator
// that the empty list satisfies, and fails on one that the empty list violates, so their
// conjuncts are read unevaluated (conjuncts.go). And what evaluation resolves through a
// default (a bound by another field, a conditional field) is found in the source
// (source.go).
package crd
