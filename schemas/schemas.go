// Package schemas has the CUE that operator packages import, embedded in the binary: the contract
// (schemas/operator), the health predicates (schemas/health) and the Kubernetes types (schemas/k8s).
//
// There are two forms, with the same paths, packages and definition names. [Full] is what a stock cue
// command finds in this repository: closed types with every field, for vet and test. In [Light], the
// Kubernetes types are open and have only apiVersion and kind. An object that the full types accept
// renders the same with the light ones, at a fraction of the cost. So the engine runs with the light
// ones; the API server checks every field anyway.
//
// The package only provides the files; package program loads them.
package schemas

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"golang.org/x/tools/txtar"
)

//go:generate go -C internal/k8sgen run .

// embedded has the files of the repository.
//
//go:embed operator/*.cue health/*.cue k8s/*/*/*.cue k8s/light.txtar k8s/rules.json
var embedded embed.FS

// lightArchive has the light form of k8s. It is one file, so that cue does not see every package twice.
const lightArchive = "k8s/light.txtar"

// root is the folder of the files in the CUE module operetta.dev.
const root = "schemas"

// full and light are built on first use: a running engine needs only one of them.
var (
	full  = sync.OnceValue(func() fs.FS { return mustTree(func(string) bool { return true }, nil) })
	light = sync.OnceValue(func() fs.FS { return mustTree(notKubernetes, mustRead(lightArchive)) })
)

// Full returns the files with the complete Kubernetes types. Paths begin with schemas, as in
// schemas/k8s/apps/v1/types.cue.
func Full() fs.FS { return full() }

// Rules returns the required fields and the enums of the Kubernetes types, as JSON: an object with
// "required", the names of the fields by Go type, and "enums", the values by Go type. A Go type is
// written as k8s.io/api/core/v1.Container.
func Rules() []byte { return mustRead("k8s/rules.json") }

// Light returns the same files with the light Kubernetes types, at the same paths.
func Light() fs.FS { return light() }

// notKubernetes reports whether both forms share a file.
func notKubernetes(name string) bool {
	return !strings.HasPrefix(name, "k8s/")
}

// mustTree returns the embedded CUE files that keep accepts, together with those of the archive. The
// files are part of the binary, so it panics if they cannot be read.
func mustTree(keep func(name string) bool, k8s []byte) fs.FS {
	all := &txtar.Archive{}
	err := fs.WalkDir(embedded, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".cue" || !keep(name) {
			return err
		}
		all.Files = append(all.Files, txtar.File{Name: path.Join(root, name), Data: mustRead(name)})
		return nil
	})
	if err != nil {
		panic(fmt.Errorf("walking the embedded schemas: %w", err))
	}
	for _, f := range txtar.Parse(k8s).Files {
		all.Files = append(all.Files, txtar.File{Name: path.Join(root, "k8s", f.Name), Data: f.Data})
	}
	tree, err := txtar.FS(all)
	if err != nil {
		panic(fmt.Errorf("building the tree of schemas: %w", err))
	}
	return tree
}

// mustRead returns one embedded file.
func mustRead(name string) []byte {
	data, err := embedded.ReadFile(name)
	if err != nil {
		panic(fmt.Errorf("reading an embedded schema: %w", err))
	}
	return data
}
