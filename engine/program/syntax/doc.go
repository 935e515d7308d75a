// Package syntax reads the text of a package: CUE's syntax trees, before any evaluation.
//
// Evaluation cannot tell everything. An expression that waits for a live object has no
// value, and a value does not know the file and line of what it refers to. The [Index] of
// a package says where its fields are written, which references its components make, under
// which conditions, and what a value is made of, as far as the text shows.
package syntax
