// Package crd turns the CUE schema of a custom resource into a
// CustomResourceDefinition.
//
//	crd, err := crd.Generate(crd.Definition{
//		Group: "example.com", Kind: "WebShop",
//		Versions: []crd.Version{{Name: "v1", Spec: spec, Served: true, Storage: true}},
//	})
//	text, err := crd.YAML(crd)
//
// What it is: a pure function. The same definition gives the same bytes, and what the
// API server accepts under the result is what CUE accepts. Where a structural schema
// cannot say what the CUE says, Generate does not say something weaker: it fails, and the
// error is [fault.Faults] with every fault of all versions, each with its path, its
// file:line and what to write instead.
//
// What it is not: it loads no files, talks to no cluster and converts between no
// versions. It does not run the API server's own validation; package conform does, and
// for CEL rules it is needed: the server refuses rules that may cost too much, which one
// over the texts of lists in lists does.
//
// # How a field is read
//
//	image!:   string         required, no default
//	env?:     ...            optional, no default
//	replicas: int | *1       default 1, not required
//	storage:  string         required: CUE does not accept its absence either
//	tls: {on: bool | *false} default {}, not required: all of it has defaults;
//	                         written in full where a rule looks at it
//
// # What has a limit without saying so
//
// A list has 256 items at most and a map 256 fields, or 32 within another list or map; a
// string has 32768 characters, or 16384 in there. What the author says wins, also where it is
// more: strings.MaxRunes, list.MaxItems, struct.MaxFields. limit.go has the numbers and the
// reasons. Numbers get none: a maximum would change what they mean.
//
// # What an author can add
//
// Kubernetes knows a few things that CUE has no word for; they are written in a @crd
// attribute on the field, on the definition that it refers to, or inside its struct:
//
//	@crd(preserveUnknownFields)                  keep what the schema does not name
//	@crd(immutable)                              CEL rule self == oldSelf
//	@crd(listType=map, listMapKey=name)          how server-side apply merges a list
//	@crd(rule="self.a <= self.b", message="…")   any CEL rule
//
// # Where they still differ
//
// The API server drops null where it is not valid, instead of refusing it. It drops
// unknown fields for clients that do not ask for strict validation; kubectl does. A list
// with listType=map refuses elements of the same key. A quantity (number | =~…) that is a
// fraction has to be written as a string. And bytes are base64 text in JSON, so who gives a
// custom resource to CUE has to decode them.
//
// # Why a walker of its own
//
// Three encoders exist in cuelang.org/go v0.17.1 and were measured: openapi with
// ExpandReferences dies of a stack overflow on recursive definitions and refuses bounded
// numbers with defaults; openapi without it refuses defaults through references, and
// drops matchN and conditional fields silently; jsonschema drops defaults.
// An experiment showed that cue.Value.Eval followed by Expr yields every scalar as a
// disjunction of conjunctions of basic types, bounds and validators, whatever the
// spelling and however many references lie between. So scalars are read from there
// (scalar.go). Lists and structs are not: evaluation forgets a validator that the empty
// list satisfies, and fails on one that it does not, so their conjuncts are taken apart
// unevaluated (parts.go). And what evaluation resolves through a default (a
// bound by another field, a conditional field) is found in the source (source.go).
package crd
