// Package schemas holds the CUE that operator packages import, as files that the engine carries in its
// binary: the contract (schemas/operator), the predicates of health (schemas/health) and the Kubernetes
// types (schemas/k8s).
//
// It exists twice, with the same paths, packages and definition names. [Full] is what a stock cue command
// finds in this repository: types with every field, closed, for vet and test. [Light] replaces the
// Kubernetes types by open ones that say apiVersion and kind and no more. An object that the full types
// accept renders the same with the light ones, for a fraction of the evaluation, so that the engine runs
// on those: the API server checks every field anyway.
//
// It is no loader: what to do with the files is for the package that calls cue/load.
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

// embedded are the files as they are in the repository.
//
//go:embed operator/*.cue health/*.cue k8s/*/*/*.cue k8s/light.txtar k8s/rules.json
var embedded embed.FS

// lightArchive is the light form of k8s, in one file so that cue does not see every package twice.
const lightArchive = "k8s/light.txtar"

// root is the folder that the files are in, from the root of the CUE module operetta.dev.
const root = "schemas"

// full and light are built on first use: an engine needs one of them only.
var (
	full  = sync.OnceValue(func() fs.FS { return mustTree(func(string) bool { return true }, nil) })
	light = sync.OnceValue(func() fs.FS { return mustTree(notKubernetes, mustRead(lightArchive)) })
)

// Full returns the files with the complete Kubernetes types. Paths begin with schemas, as in
// schemas/k8s/apps/v1/types.cue.
func Full() fs.FS { return full() }

// Rules returns what is required of the Kubernetes types and what their enums allow, as JSON: an object
// with "required", the names of fields by Go type, and "enums", the values by Go type. A Go type is
// written k8s.io/api/core/v1.Container.
func Rules() []byte { return mustRead("k8s/rules.json") }

// Light returns the same files with the light Kubernetes types, at the same paths.
func Light() fs.FS { return light() }

// notKubernetes tells the files that both forms share.
func notKubernetes(name string) bool {
	return !strings.HasPrefix(name, "k8s/")
}

// mustTree returns the embedded CUE files that keep accepts, with those of the archive beside them. The
// files are part of the binary: that they cannot be read is a mistake in this package.
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
