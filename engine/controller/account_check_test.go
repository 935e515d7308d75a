package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/object"
)

var shopsPermission = permission{group: "example.com", resource: "shops"}

func TestTheCheckOfTheOperatorItselfSaysWhatItLacks(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "selfsubjectaccessreviews"}, "", errors.New("no"))
	for name, row := range map[string]struct {
		reason  string
		places  []string
		allowed func(permission) (bool, error)
		want    string
		known   bool
	}{
		"all is there": {"", []string{""}, func(permission) (bool, error) { return true, nil }, "", true},
		"no list": {"nothing is known of any resource", []string{""}, func(p permission) (bool, error) { return p.verb != "list", nil },
			`the operator cannot list resource "shops" in API group "example.com" at the cluster scope; operetta rbac prints the roles from a folder with the package`, true},
		"one of two namespaces": {"it serves the other one", []string{"here", "there"}, func(p permission) (bool, error) { return p.namespace == "here", nil }, "", true},
		"a part of each namespace": {"it serves none of them", []string{"here", "there"}, func(p permission) (bool, error) { return (p.namespace == "here") != (p.verb == "watch"), nil },
			`the operator cannot watch resource "shops" in API group "example.com" in the namespace "here", cannot list resource "shops" in API group "example.com" in the namespace "there", cannot patch resource "shops/status" in API group "example.com" in the namespace "there"; operetta rbac prints the roles from a folder with the package`, true},
		"it may not ask": {"that says nothing about the rest", []string{""}, func(permission) (bool, error) { return false, forbidden }, "", true},
		"an outage":      {"it says nothing about rights", []string{""}, func(permission) (bool, error) { return false, errors.New("away") }, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newAccountCheck(shopsPermission, row.places, func(_ context.Context, p permission) (bool, error) { return row.allowed(p) }, nil)
			c.log = logr.Discard()
			if got, known := c.check(t.Context()); got != row.want || known != row.known {
				t.Errorf("%s: it says %q (known: %v)", row.reason, got, known)
			}
		})
	}
}

func TestARefusedRequestHasThoseAskAgainWhomItConcerns(t *testing.T) {
	t.Parallel()
	secrets, shops := []permission{{resource: "secrets", verb: "list"}}, []permission{{group: "example.com", resource: "shops", verb: "list", namespace: "here"}}
	for name, row := range map[string]struct {
		reason string
		of, by object.Account
		lacked []permission
		want   bool
	}{
		"the operator, about the kind":     {"it may have lost that right", object.Account{}, object.Account{}, shops, true},
		"the operator, about another kind": {"it sends requests for all packages, which would all ask", object.Account{}, object.Account{}, secrets, false},
		"an account, about another kind":   {"it may be that nobody may act as it", shopAccount, shopAccount, secrets, true},
		"another account":                  {"its rights are its own", shopAccount, object.Account{}, shops, false},
		"an account, for the operator":     {"the same", object.Account{}, shopAccount, shops, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := shopsPermission
			own.as = row.of
			c := newAccountCheck(own, []string{""}, nil, nil)
			if got := c.concerns(row.by, row.lacked); got != row.want {
				t.Errorf("%s: it asks again: %v", row.reason, got)
			}
		})
	}
}

// A Package would say that it is served, and take that back.
func TestWhatIsWrongIsKnownBeforeAnythingIsSaid(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		after  time.Duration
		want   string
		waits  time.Duration
	}{
		"an answer":  {"the status waits for it", time.Second, `the operator cannot patch resource "shops/status" in API group "example.com" at the cluster scope; operetta rbac prints the roles from a folder with the package`, time.Second},
		"no answer":  {"a Package must not wait for long", time.Hour, "", firstAccountCheck},
		"not wanted": {"there is no check of a folder", 0, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var c *accountCheck
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if row.after > 0 {
					c = newAccountCheck(shopsPermission, []string{""}, func(ctx context.Context, p permission) (bool, error) {
						if p.verb != "patch" {
							return true, nil
						}
						select {
						case <-ctx.Done():
						case <-time.After(row.after):
						}
						return false, ctx.Err()
					}, func(string) {})
					c.log = logr.Discard()
					go func() { _ = c.Start(ctx) }()
				}
				began := time.Now()
				if got, took := c.problem(), time.Since(began); got != row.want || took != row.waits {
					t.Errorf("%s: after %s it says %q", row.reason, took, got)
				}
			})
		})
	}
}
