// Package scaffold has the files with which a new operator package begins: the package, its tests, a sample
// resource, and what a CUE module needs so that editors and the cue command understand it. It writes no
// file; the files are templates in the folder files.
//
//	Package{Name: "greeter", ...}.Files()    the package, its tests and a sample
//	Module{Path: "example.com/operators"}.Files()    cue.mod, with a copy of the contract
package scaffold
