package certificates

import (
	"bytes"
	"crypto/x509"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	hosts   = []string{"shop.town.svc", "shop.town", "127.0.0.1"}
	options = Options{Hosts: hosts, Lifetime: 90 * time.Minute, Overlap: time.Minute}
)

// step returns what follows from data.
func step(t *testing.T, data map[string][]byte, trusted time.Duration, now time.Time) Result {
	t.Helper()
	out, err := Next(data, options, trusted, now)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// verifies reports whether callers who trust some authorities accept the certificate that is served.
func verifies(t *testing.T, served, trusted map[string][]byte, now time.Time) bool {
	t.Helper()
	certificate, err := Serving(served)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted[AuthoritiesKey])
	for _, host := range hosts {
		if _, err := certificate.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: now}); err != nil {
			t.Logf("%s: %v", host, err)
			return false
		}
	}
	return true
}

func TestACertificateIsReplacedWhileEverybodyTrustsBoth(t *testing.T) {
	t.Parallel()
	now := time.Now()
	first := step(t, nil, -1, now)
	if !first.Changed || !verifies(t, first.Data, first.Data, now) {
		t.Fatal("nothing can be served")
	}
	rest := step(t, first.Data, time.Hour, now)
	if rest.Changed || rest.Again < 55*time.Minute || rest.Again > time.Hour {
		t.Errorf("changed: %t, again in %s", rest.Changed, rest.Again)
	}
	late := now.Add(61 * time.Minute)
	overlapping := step(t, first.Data, time.Hour, late)
	if !overlapping.Changed || !bytes.Equal(overlapping.Data[certificateKey], first.Data[certificateKey]) {
		t.Error("the next certificate is served before anybody trusts it")
	}
	for _, trusted := range []time.Duration{-1, 0, 59 * time.Second} {
		if wait := step(t, overlapping.Data, trusted, late); wait.Changed || wait.Again <= 0 || wait.Again > time.Minute {
			t.Errorf("trusted for %s: changed: %t, again in %s", trusted, wait.Changed, wait.Again)
		}
	}
	last := step(t, overlapping.Data, time.Minute, late)
	if !last.Changed || bytes.Equal(last.Data[certificateKey], first.Data[certificateKey]) {
		t.Fatal("the next certificate is not served")
	}
	for name, pair := range map[string][2]Result{
		"the first to those who know both":       {first, overlapping},
		"the first to those who know the second": {first, last},
		"the second to those who know both":      {last, overlapping},
		"the second to those who know it":        {last, last},
	} {
		if !verifies(t, pair[0].Data, pair[1].Data, late) {
			t.Errorf("a request fails: %s", name)
		}
	}
	if diff := cmp.Diff([]string{AuthoritiesKey, certificateKey, privateKeyKey}, slices.Sorted(maps.Keys(last.Data))); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeServedIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	now := time.Now()
	good := step(t, nil, -1, now).Data
	other, err := Next(nil, Options{Hosts: []string{"other"}, Lifetime: time.Hour}, -1, now)
	if err != nil {
		t.Fatal(err)
	}
	with := func(key string, value []byte) map[string][]byte {
		out := maps.Clone(good)
		out[key] = value
		return out
	}
	for name, tc := range map[string]struct {
		reason string
		data   map[string][]byte
		now    time.Time
	}{
		"Empty":         {"an installation has an empty Secret", map[string][]byte{}, now},
		"Malformed":     {"somebody has written to it", with(certificateKey, []byte("x")), now},
		"OtherKey":      {"somebody has written to it", with(privateKeyKey, other.Data[privateKeyKey]), now},
		"NoKey":         {"somebody has removed it", with(privateKeyKey, nil), now},
		"OtherHost":     {"the Service has another name now", other.Data, now},
		"NotTrusted":    {"nobody could trust it", with(AuthoritiesKey, other.Data[AuthoritiesKey]), now},
		"Expired":       {"nobody was there to replace it", good, now.Add(3 * time.Hour)},
		"NotYet":        {"the clock was wrong", good, now.Add(-3 * time.Hour)},
		"NoAuthority":   {"it cannot be told what to trust", with(certificateKey, good[certificateKey][:bytes.LastIndex(good[certificateKey], []byte("-----BEGIN"))]), now},
		"NoAuthorities": {"nobody could trust it", with(AuthoritiesKey, nil), now},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := step(t, tc.data, time.Hour, tc.now)
			if !got.Changed || bytes.Equal(got.Data[certificateKey], good[certificateKey]) || !verifies(t, got.Data, got.Data, now) {
				t.Errorf("%s: it is kept", tc.reason)
			}
		})
	}
}

func TestANextCertificateThatIsNoneIsMadeAgain(t *testing.T) {
	t.Parallel()
	now := time.Now()
	late := now.Add(61 * time.Minute)
	overlapping := step(t, step(t, nil, -1, now).Data, time.Hour, late).Data
	for _, broken := range [][]byte{nil, []byte("x"), overlapping[certificateKey]} {
		data := maps.Clone(overlapping)
		data[nextCertificateKey] = broken
		got := step(t, data, time.Hour, late)
		if !got.Changed || !bytes.Equal(got.Data[certificateKey], overlapping[certificateKey]) || bytes.Equal(got.Data[nextCertificateKey], broken) {
			t.Errorf("%.20q is served, or kept", broken)
		}
	}
}
