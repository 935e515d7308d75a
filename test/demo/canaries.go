package main

import (
	"context"
	"fmt"
	"time"

	"operetta.dev/test/internal/screen"
)

// A revision is a changed content of the Package of the demo.
type revision struct {
	// what says what it is, and text is a file of it.
	what, text string
	// phase is how its canary ends.
	phase string
}

// The revisions of the demo: the web servers of one never count as healthy.
var (
	goodRevision = revision{"a good revision", "package webapp\n\ncomponents: web: objects: deployment: metadata: annotations: \"example.com/revision\": \"good\"\n", "Promoted"}
	badRevision  = revision{"a bad revision", "package webapp\n\ncomponents: web: failed: always: cr.metadata.name != \"\"\n", "RolledBack"}
)

// canary is how each of them goes to the resources. The demo has one.
var canary = map[string]any{"share": "1%", "readyFor": "2s", "deadline": "2m"}

// rollGood and rollBad apply a revision, and wait for the end of its canary.
func (d *demo) rollGood(ctx context.Context) error { return d.roll(ctx, goodRevision) }
func (d *demo) rollBad(ctx context.Context) error  { return d.roll(ctx, badRevision) }

func (d *demo) roll(ctx context.Context, r revision) error {
	st := d.screen.Start("try " + r.what + " by a canary")
	begin := time.Now()
	digest := ""
	err := d.putPackage(ctx, r.text)
	if err == nil {
		err = d.poll(ctx, d.timeout, "the canary to be "+r.phase, func(ctx context.Context) (bool, error) {
			if _, err := d.fetchView(ctx, d.sampled); err != nil {
				return false, err
			}
			var got packageObject
			err := d.cluster.get(ctx, packagePath(packageName), &got)
			digest = got.Status.Canary.Digest
			return err == nil && got.Status.Canary.Phase == r.phase && got.Status.SourceDigest == digest, err
		})
	}
	if err == nil {
		err = d.drawUntilReady(ctx, d.sampled)
	}
	st.End(err, fmt.Sprintf("%s is %s after %s", short(digest), r.phase, screen.Seconds(time.Since(begin))))
	d.screen.Keep()
	return err
}
