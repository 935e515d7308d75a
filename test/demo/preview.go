package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"operetta.dev/test/internal/binary"
)

const (
	// previewLimit is how long the dry run may take. It takes a second, and nothing waits for it.
	previewLimit = time.Minute
	// framePause is how long each frame of the preview is shown on a terminal.
	framePause = 2 * time.Second
)

// A moment is a step of a dry run, as operetta prints it with -o json.
type moment struct {
	Resource  named           `json:"resource"`
	Status    json.RawMessage `json:"status"`
	Simulated []named         `json:"simulated"`
}

// named names an object of a dry run, with its namespace unless it has none.
type named struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
}

// preview plays in memory how the sample becomes Ready, while the control plane is built. It is a picture of what will
// come and says so. Whatever goes wrong with it, the cluster will tell.
func (d *demo) preview(ctx context.Context, built <-chan struct{}) {
	st := d.screen.Start("preview, in memory")
	limited, cancel := context.WithTimeout(ctx, previewLimit)
	defer cancel()
	command := []string{"run", "--dry-run", d.packages, "-f", d.sample}
	out, err := runTool(limited, binary.Path, append(command, "-o", "json")...)
	frames, broken := d.frames(out)
	if err = errors.Join(err, broken); err != nil {
		st.End(err, "")
		if ctx.Err() == nil {
			d.screen.Print("", d.screen.Ink().Warn("the preview has failed: ")+err.Error(), "")
		}
		return
	}
	st.End(nil, binary.Path+" "+strings.Join(command, " "))
	d.play(ctx, frames, built)
}

// play shows the frames one after the other, and leaves the last. It ends early when the control plane is built. What
// is no terminal gets the last one only: nothing moves there.
func (d *demo) play(ctx context.Context, frames [][]string, built <-chan struct{}) {
	if !d.screen.Live() && len(frames) > 0 {
		frames = frames[len(frames)-1:]
	}
	for i, frame := range frames {
		d.screen.Show(frame)
		if i == len(frames)-1 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-built:
			return
		case <-time.After(framePause):
		}
	}
}

// frames draws the steps of a dry run that are about the sample. The first step is about it.
func (d *demo) frames(lines []byte) ([][]string, error) {
	var moments []moment
	for line := range bytes.Lines(lines) {
		var m moment
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("reading a step of the dry run: %w", err)
		}
		moments = append(moments, m)
	}
	var drawn [][]string
	simulated := map[named]bool{}
	for _, m := range moments {
		if m.Resource == moments[0].Resource {
			v, err := m.view(simulated)
			if err != nil {
				return nil, err
			}
			drawn = append(drawn, v.draw(d.screen.Ink()))
		}
		// The controllers are simulated after the reconcile, which has not seen it.
		for _, n := range m.Simulated {
			simulated[n] = true
		}
	}
	ink := d.screen.Ink()
	for i, picture := range drawn {
		head := fmt.Sprintf("Preview, step %d of %d: played in memory, there is no cluster yet", i+1, len(drawn))
		drawn[i] = append([]string{ink.Warn(head)}, picture...)
	}
	return drawn, nil
}

// view returns a moment as it is drawn. What the dry run has made ready is told from what is.
func (m moment) view(simulated map[named]bool) (view, error) {
	r := resource{APIVersion: m.Resource.APIVersion, Kind: m.Resource.Kind}
	r.Metadata.Name, r.Metadata.Namespace = m.Resource.Name, m.Resource.Namespace
	if err := json.Unmarshal(m.Status, &r.Status); err != nil {
		return view{}, fmt.Errorf("reading the status of %s/%s: %w", r.Kind, r.Metadata.Name, err)
	}
	v := view{resource: r, simulated: map[entry]bool{}}
	for _, g := range r.Status.Inventory {
		for _, e := range g.Objects {
			v.simulated[e] = simulated[e.named(m.Resource.Namespace)]
		}
	}
	return v, nil
}

// named returns an object of the inventory of a resource in a namespace.
func (e entry) named(namespace string) named {
	switch {
	case e.ClusterScoped:
		namespace = ""
	case e.Namespace != "":
		namespace = e.Namespace
	}
	return named{APIVersion: e.APIVersion, Kind: e.Kind, Namespace: namespace, Name: e.Name}
}
