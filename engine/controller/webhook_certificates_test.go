package controller

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"operetta.dev/engine/certificates"
)

// secretWithCertificate returns a Secret with a certificate that is valid from now on for two hours or less.
func secretWithCertificate(t *testing.T) *corev1.Secret {
	t.Helper()
	made, err := certificates.Next(nil, certificates.Options{Hosts: []string{"a"}, Lifetime: time.Hour}, -1, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{Data: made.Data}
}

func TestAnExpiredCertificateIsServedOnlyIfThereIsNothingBetterAndSaidToBeExpired(t *testing.T) {
	t.Parallel()
	const fresh, expired = "serving webhooks with a new certificate", "the certificate of the webhooks has expired"
	for name, row := range map[string]struct {
		reason string
		// seen are the Secrets that are seen, by what they have: the one that expires first, or the other.
		seen []string
		// served is which is served at the end, and said what was logged.
		served string
		said   []string
		ready  bool
	}{
		"a good one":                      {"it is new", []string{"other"}, "other", []string{fresh}, true},
		"an expired one after an outage":  {"whoever does not lead cannot replace it, and must not call it new", []string{"first"}, "first", []string{expired}, false},
		"the same expired one once more":  {"the first time was enough", []string{"first", "first"}, "first", []string{expired}, false},
		"a good one after an expired one": {"whoever leads has replaced it", []string{"first", "other"}, "other", []string{expired, fresh}, true},
		"an expired one after a good one": {"somebody has put back an old Secret, with which no request would succeed", []string{"other", "first"}, "other", []string{fresh, expired}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var said []string
				c := &webhookCertificates{changed: make(chan struct{}, 1), log: funcr.New(func(_, args string) {
					for _, text := range []string{fresh, expired} {
						if strings.Contains(args, text) {
							said = append(said, text)
						}
					}
				}, funcr.Options{})}
				of := map[string]*corev1.Secret{"first": secretWithCertificate(t)}
				<-time.After(3 * time.Hour)
				of["other"] = secretWithCertificate(t)
				for _, which := range row.seen {
					c.see(of[which])
				}
				if diff := cmp.Diff(row.said, said); diff != "" {
					t.Errorf("%s: said (-want +got):\n%s", row.reason, diff)
				}
				if err := c.ready(nil); (err == nil) != row.ready {
					t.Errorf("%s: it is ready: %v", row.reason, err)
				}
				want, err := certificates.Serving(of[row.served].Data)
				if err != nil {
					t.Fatal(err)
				}
				got, err := c.get(nil)
				if err != nil || !bytes.Equal(got.Certificate[0], want.Certificate[0]) {
					t.Errorf("%s: another one is served than the %s: %v", row.reason, row.served, err)
				}
			})
		})
	}
}

func TestAProcessSaysThatItsCertificateHasExpiredMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &webhookCertificates{changed: make(chan struct{}, 1), log: funcr.New(func(string, string) {}, funcr.Options{})}
		c.see(secretWithCertificate(t))
		if err := c.ready(nil); err != nil {
			t.Errorf("a process with a certificate is not ready: %v", err)
		}
		<-time.After(3 * time.Hour)
		if err := c.ready(nil); err == nil {
			t.Error("nobody is told that the certificate has expired")
		}
	})
}
