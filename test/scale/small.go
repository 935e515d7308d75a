package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// links is how many objects a Chain has.
	links = 10
	// fleetObjects is how many objects each resource of the fleet has.
	fleetObjects = 4
	// chainTries is how often a chain is made; the median counts, as each takes less than the noise
	// of a machine that is shared.
	chainTries = 5
)

// childCounts are how many objects the one resource of children has.
var childCounts = []int{200, 1000}

// chain measures a chain of objects: created, and a value passed on.
func (b *bench) chain(ctx context.Context, show func(string)) error {
	var created, passed []time.Duration
	for i := range chainTries {
		name := fmt.Sprint("chain-", i)
		show(name)
		took, err := b.passOn(ctx, name, "first", func() error {
			return b.plane.admin.Create(ctx, resource(chain, name, map[string]any{"text": "first"}))
		})
		if err != nil {
			return err
		}
		created = append(created, took)
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
		took, err = b.passOn(ctx, name, "second", func() error {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"text":"second"}}`))
			return b.plane.admin.Patch(ctx, resource(chain, name, nil), patch)
		})
		if err != nil {
			return err
		}
		passed = append(passed, took)
	}
	b.add("chain_created", median(created).Seconds())
	b.add("chain_passed", median(passed).Seconds())
	return b.plane.removeAll(ctx, chain, configMaps)
}

// passOn returns how long it takes from what a user does until the last object of a chain has a text
// and the chain is Ready.
func (b *bench) passOn(ctx context.Context, name, text string, do func() error) (time.Duration, error) {
	last := fmt.Sprint(name, "-", links-1)
	arrived, err := b.plane.expect(ctx, configMaps, 1, func(u *unstructured.Unstructured) bool {
		got, _, _ := unstructured.NestedString(u.Object, "data", "text")
		return u.GetName() == last && got == text
	})
	if err != nil {
		return 0, err
	}
	defer arrived.stop()
	ready, err := b.plane.expect(ctx, chain, 1, func(u *unstructured.Unstructured) bool {
		got, _, _ := unstructured.NestedString(u.Object, "spec", "text")
		return u.GetName() == name && got == text && isReady(u)
	})
	if err != nil {
		return 0, err
	}
	defer ready.stop()
	began := time.Now()
	if err := do(); err != nil {
		return 0, err
	}
	quiet := func(string) {}
	err = errors.Join(arrived.wait(ctx, b.proc, quiet), ready.wait(ctx, b.proc, quiet))
	return time.Since(began), err
}

// children measures one resource with many objects.
func (b *bench) children(ctx context.Context, show func(string)) error {
	for _, n := range childCounts {
		began := time.Now()
		if err := b.createAll(ctx, batch, fmt.Sprint("batch-", n), 1, map[string]any{"count": int64(n)}, show); err != nil {
			return err
		}
		b.add(fmt.Sprint("children_", n), time.Since(began).Seconds())
		if n == childCounts[len(childCounts)-1] {
			if err := b.addStatusSize(ctx, fmt.Sprint("batch-", n, "-0000")); err != nil {
				return err
			}
		}
		if err := b.plane.removeAll(ctx, batch, configMaps); err != nil {
			return err
		}
	}
	return nil
}

// addStatusSize measures the status of a resource.
func (b *bench) addStatusSize(ctx context.Context, name string) error {
	u := resource(batch, name, nil)
	if err := b.plane.admin.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
		return err
	}
	status, err := json.Marshal(u.Object["status"])
	b.add("children_status", float64(len(status))/1024)
	return err
}

// fleet measures resources of a few small objects.
func (b *bench) fleet(ctx context.Context, show func(string)) error {
	b.proc.ForgetPeakMemory()
	cpu, began := b.proc.CPU(), time.Now()
	if err := b.createAll(ctx, batch, "fleet", b.n, map[string]any{"count": int64(fleetObjects)}, show); err != nil {
		return err
	}
	b.add("fleet_wall", time.Since(began).Seconds())
	if err := pause(ctx, settleTime); err != nil {
		return err
	}
	b.add("fleet_cpu", b.perResource(b.proc.CPU()-cpu))
	b.add("fleet_memory", mebibytes(b.proc.PeakMemory()))
	show("remove")
	return b.plane.removeAll(ctx, batch, configMaps)
}
