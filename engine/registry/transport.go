package registry

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	// maxBlob bounds each answer of a registry, in bytes: a module is one, as a zip file.
	maxBlob = 8 << 20
	// maxUnpacked bounds the files of a module, in bytes, and maxEntries their number.
	maxUnpacked = 32 << 20
	maxEntries  = 10_000
)

// guard is how requests leave this process: bounded answers, and no plain HTTP but to hosts for which it is
// meant, whoever redirects there.
type guard struct {
	next http.RoundTripper
	// plain reports whether a host may be reached by plain HTTP.
	plain func(host string) bool
}

// newTransport returns the transport for requests. plain reports whether a host may be reached by plain HTTP.
func newTransport(next http.RoundTripper, plain func(host string) bool) http.RoundTripper {
	if next == nil {
		next = defaultTransport()
	}
	return &guard{next: next, plain: plain}
}

// defaultTransport is http.DefaultTransport, whose connections other requests do not share.
func defaultTransport() http.RoundTripper {
	dialer := &net.Dialer{Timeout: fetchTimeout, KeepAlive: fetchTimeout}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
		IdleConnTimeout: fetchTimeout, TLSHandshakeTimeout: fetchTimeout, ExpectContinueTimeout: time.Second,
		MaxResponseHeaderBytes: 1 << 20,
	}
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && !g.plain(req.URL.Host) {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, errorf(Invalid, "%s is to be reached by plain HTTP; only loopback addresses are, and hosts that are named for it", req.URL.Host)
	}
	resp, err := g.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: maxBlob}
	return resp, nil
}

// boundedBody is the body of an answer, which errors beyond its limit.
type boundedBody struct {
	io.ReadCloser

	left int
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, tooLarge(maxBlob)
	}
	return n, err
}

func tooLarge(limit int) error {
	return errorf(TooLarge, "it answers with more than %d bytes", limit)
}

// IsLoopback reports whether a host, with or without a port, is this machine, as CUE decides it: such a registry
// is reached by plain HTTP.
func IsLoopback(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	if name == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil && ip.IsLoopback()
}

// plainHosts returns which hosts may be reached by plain HTTP for a registry: those that are named, and addresses
// of this machine if the registry is one, too. So no registry elsewhere leads to a service of this machine.
func plainHosts(registry string, insecure []string) func(host string) bool {
	return func(host string) bool {
		return slices.Contains(insecure, host) || IsLoopback(host) && IsLoopback(registry)
	}
}
