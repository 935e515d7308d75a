package main

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"operetta.dev/engine/check"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/crd/conform"
	"operetta.dev/engine/vet"
	"operetta.dev/engine/worker"
)

func cpu() time.Duration { return worker.ProcessorTime() }

func TestScratch(t *testing.T) {
	dir := os.Getenv("SCRATCH")
	if dir == "" {
		t.Skip()
	}
	last := cpu()
	say := func(what string) {
		fmt.Printf("%-20s %v\n", what, (cpu() - last).Round(time.Millisecond))
		last = cpu()
	}
	snapshot, err := readPackage(dir)
	if err != nil {
		t.Fatal(err)
	}
	p, err := compile(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	say("compile")
	if p, err = p.Cheap(); err != nil {
		t.Fatal(err)
	}
	say("cheap")
	p.Admission()
	say("admission")
	a, b, c := vet.All(p, nil)
	fmt.Println(len(a), len(b), len(c))
	say("vet.All")
	vet.Dependencies(p)
	say("Dependencies")
	vet.Kinds(p)
	say("Kinds")
	check.RoundTrips(p)
	say("RoundTrips")
	definition := crdDefinition(p.Name(), p.Reach(), p.Meta())
	d, rules, err := crd.GenerateWithRules(definition)
	say("GenerateWithRules")
	if err == nil {
		_, err = crd.Affordable(definition, d, rules, conform.Errors)
		say("Affordable")
		fmt.Println(conformanceFault(definition, d))
		say("conformance")
	}
	vet.Types(snapshot, nil)
	say("Types")
	if os.Getenv("NOCHECK") != "" {
		return
	}
	r, err := check.Run(context.Background(), p, check.Options{Progress: func(done, all int) {
		if done == 1 {
			say("first case")
		}
	}})
	fmt.Println(r, err)
	say("check")
}
