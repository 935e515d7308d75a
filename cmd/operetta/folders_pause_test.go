package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestATreeIsReadAgainSoonAfterAPackageThatTookLongToServe has a clock that only waiting moves.
func TestATreeIsReadAgainSoonAfterAPackageThatTookLongToServe(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reading, serving time.Duration
		want             []time.Duration
		reason           string
	}{
		"nothing takes long": {
			want:   []time.Duration{foldersInterval, 2 * foldersInterval, 3 * foldersInterval},
			reason: "the folders are looked for at an interval",
		},
		"serving takes long": {
			serving: time.Minute,
			want:    []time.Duration{foldersInterval, 2*foldersInterval + time.Minute, 3*foldersInterval + 2*time.Minute},
			reason:  "how long a package takes to load says nothing about the size of the tree",
		},
		"reading takes long": {
			reading: time.Second,
			want:    []time.Duration{foldersInterval, foldersInterval + time.Second + foldersShare*time.Second, foldersInterval + 2*(time.Second+foldersShare*time.Second)},
			reason:  "a large tree is read less often",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				began := time.Now()
				var got []time.Duration
				look := func() []string {
					got = append(got, time.Since(began))
					if len(got) == len(row.want) {
						cancel()
					}
					<-time.After(row.reading)
					return nil
				}
				if err := lookRepeatedly(ctx, look, func([]string) error { <-time.After(row.serving); return nil }); err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(row.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", row.reason, diff)
				}
			})
		})
	}
}
