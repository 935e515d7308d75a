// Command k8sgen writes schemas/k8s: the Kubernetes types in CUE, in a full form for vet and test, and in
// a light form for the engine. It also writes rules.json, with the required fields and the enums, for
// code that validates objects by their Go types.
//
// It is not a general translator from Go to CUE. It reads the source of k8s.io/api and of the few
// packages of k8s.io/apimachinery that it refers to, at the version in this module's go.mod, which is
// the version with which the engine talks to the cluster. The alternatives lack information that a
// manifest has to obey:
//
//   - "cue get go" needs the embedded TypeMeta to be tagged ",inline", which it no longer is from
//     k8s.io/api v0.37 on; it knows neither the kind nor the apiVersion of a type, and most of what it
//     prints would have to be rewritten anyway.
//   - The OpenAPI documents carry no Go constants, and come as a part of k8s.io/kubernetes only, which is
//     much to download for them.
//
// The source is parsed and not compiled, so a run takes a second.
//
//	go -C schemas/internal/k8sgen run .          # rewrite schemas/k8s
//	go -C schemas/internal/k8sgen run . -check   # exit 1 with a diff if it is not current
//
// The rules of the translation make sure that a typed object renders exactly what its author wrote:
//
//   - A type with a TypeMeta is an object: its apiVersion and kind are set. Within another object they may
//     be left out, as in the items of a list.
//   - Any other field is required (!) or optional (?), never regular. It is optional if it is marked
//     +optional, or omitted when empty and not marked +required.
//   - Structs are closed. Embedded structs are flattened.
//   - A pointer is what it points to: nobody writes null in a manifest.
//   - A string type marked +enum is the disjunction of its constants; every constant is a definition.
//   - Types with their own JSON form (Quantity, IntOrString, Time...) are written by hand in overrides.go.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// errStale is returned by -check when the committed files differ from the generated ones.
var errStale = errors.New("schemas/k8s is not current: run go generate ./schemas")

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "k8sgen:", err)
		os.Exit(1)
	}
}

// run runs the command with some arguments.
func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("k8sgen", flag.ContinueOnError)
	check := flags.Bool("check", false, "compare instead of write, and fail with a diff")
	dir := flags.String("out", "../../k8s", "the folder of the generated packages")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("reading the command line: %w", err)
	}

	files, err := generate()
	if err != nil {
		return err
	}
	if *check {
		return compare(*dir, files, out)
	}
	return write(*dir, files)
}

// generate returns every file of schemas/k8s, by its path below that folder.
func generate() (map[string][]byte, error) {
	mods, err := findModules("k8s.io/api", "k8s.io/apimachinery")
	if err != nil {
		return nil, err
	}
	pkgs, err := parse(mods, packages)
	if err != nil {
		return nil, err
	}
	prune(pkgs)

	full, err := renderAll(pkgs, fullForm)
	if err != nil {
		return nil, err
	}
	light, err := renderAll(pkgs, lightForm)
	if err != nil {
		return nil, err
	}
	full[lightFile] = archive(light)
	full[rulesFile], err = renderRules(pkgs)
	return full, err
}
