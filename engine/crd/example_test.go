package crd_test

import (
	"fmt"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"

	"operetta.dev/engine/crd"
)

func ExampleGenerate() {
	input := cuecontext.New().CompileString(`
		#Spec: {
			image!:   string
			replicas: int & >=1 | *3
			source:   {git!: string} | {oci!: string}
		}`, cue.Filename("spec.cue"))
	_, err := crd.Generate(crd.CustomResource{
		Group: "example.com", Kind: "WebShop",
		Versions: []crd.Version{{Name: "v1", Spec: input.LookupPath(cue.ParsePath("#Spec")), Served: true, Storage: true}},
	})
	fmt.Println(err)
	// Output:
	// spec.cue:5: versions.v1.spec.source: a structural schema cannot express a choice between structs (give each alternative a text of its own that tells it, as in {kind: "a", x: int} | {kind: "b", y: string}, or write it as an optional field of one struct, with @crd(rule="has(self.a) != has(self.b)") in it if exactly one must be set)
}
