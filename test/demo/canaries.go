package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"operetta.dev/test/internal/screen"
)

// A revision is a changed content of the Package of the demo.
type revision struct {
	// what says what it is, and text is a file of it.
	what, text string
	// deadline is how long its canary may take, and phase how it ends.
	deadline, phase string
}

// The revisions of the demo: the web servers of one never count as healthy. Its canary waits for them, so that a person sees who is
// spared meanwhile.
var (
	goodRevision = revision{"a good revision", "package webapp\n\ncomponents: web: objects: deployment: metadata: annotations: \"example.com/revision\": \"good\"\n", "2m", "Promoted"}
	badRevision  = revision{"a bad revision", "package webapp\n\ncomponents: web: verify: never: live.web.deployment.status.readyReplicas < 0\n", "30s", "RolledBack"}
)

// How a revision goes to the resources: to a share of them first. With the sample there are a few, so it is one of them.
const (
	smallOnes   = 4
	canaryShare = 20
	// maxBeyond is how many looks in a row may see the revision at more than the share: the status says that a canary has ended a moment
	// after the others get it.
	maxBeyond = 20
)

// canary is how a revision goes to the resources.
func (r revision) canary() map[string]any {
	return map[string]any{"share": fmt.Sprintf("%d%%", canaryShare), "readyFor": "5s", "deadline": r.deadline}
}

// rollGood and rollBad apply a revision, and wait for the end of its canary.
func (d *demo) rollGood(ctx context.Context) error { return d.roll(ctx, goodRevision) }
func (d *demo) rollBad(ctx context.Context) error  { return d.roll(ctx, badRevision) }

func (d *demo) roll(ctx context.Context, r revision) error {
	st := d.screen.Start("try " + r.what + " by a canary")
	begin := time.Now()
	about := ""
	all, err := d.kindred(ctx)
	if err == nil {
		err = d.putPackage(ctx, r)
	}
	if err == nil {
		about, err = d.watchCanary(ctx, r, versions(all))
	}
	st.End(err, fmt.Sprintf("%s after %s", about, screen.Seconds(time.Since(begin))))
	d.screen.Keep()
	return err
}

// watchCanary draws the resources until the canary of a revision has ended and all are Ready. It says how it has ended, and errors if
// nobody could see that others were spared.
func (d *demo) watchCanary(ctx context.Context, r revision, before []string) (string, error) {
	f, digest, seen := fleet{before: before}, "", false
	var spread error
	beyond := 0 // how many looks in a row saw more than the share
	err := d.poll(ctx, d.timeout, "the canary to be "+r.phase, func(ctx context.Context) (bool, error) {
		// The resources come first: what they have was not given to them after the end of the canary.
		all, err := d.kindred(ctx)
		if err != nil {
			return false, err
		}
		f.resources = all
		var got packageObject
		if err := d.cluster.get(ctx, packagePath(packageName), &got); err != nil {
			return false, err
		}
		f.phase, digest = got.Status.Canary.Phase, got.Status.Canary.Digest
		ended := f.phase == r.phase && got.Status.SourceDigest == digest
		if !ended && !slices.Contains(underway, f.phase) {
			f.phase = "" // it is that of the revision before
		}
		d.screen.Show(f.draw(d.screen.Ink()))
		var tried bool
		if tried, spread = f.tried(); tried && !seen {
			seen = true
			d.screen.Keep()
		}
		beyond++
		if spread == nil {
			beyond = 0
		}
		return beyond > maxBeyond || ended && f.settled(r.phase == goodRevision.phase), nil
	})
	if err = errors.Join(err, spread); err == nil && !seen {
		err = errors.New("no resource was seen with the revision while the others had what was before")
	}
	return short(digest) + " is " + r.phase, err
}
