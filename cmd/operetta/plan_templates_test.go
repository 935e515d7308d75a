package main

import (
	"testing"

	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
)

// With the default of operetta run, CUE is asked about each resource first, and a template predicts only what it will be
// asked. A plan has to say what such an operator does.
func TestAPlanAsksCUEAboutEachResource(t *testing.T) {
	t.Parallel()
	p := inline.Program(t, `package shop

import "operetta.dev/schemas/operator"

operator.#Controller

group: "example.com"
kind:  "Shop"
versions: v1: spec: {name: string}
cr: spec: {name: string}
components: web: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "cm", data: name: cr.spec.name}
`)
	e := evaluatorOf(p, evaluate.InProcess(p))
	shop := func(name string) program.Session {
		return program.Session{CR: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Shop", "metadata": map[string]any{"name": name, "namespace": "default", "uid": name}, "spec": map[string]any{"name": name},
		}}
	}
	if _, err := e.Evaluate(shop("first")); err != nil {
		t.Fatal(err)
	}
	if _, is := e.Predict(shop("second")); !is {
		t.Error("a template evaluates a resource that CUE has not seen")
	}
}
