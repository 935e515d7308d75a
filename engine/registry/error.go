package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"syscall"

	"cuelabs.dev/go/oci/ociregistry"
	"cuelang.org/go/mod/modregistry"
)

// A Code says what kind of failure an Error is.
type Code int

// The codes.
const (
	// Unreachable: there is no connection, or it was lost.
	Unreachable Code = iota
	// TimedOut: the registry has not answered in time.
	TimedOut
	// Failed: the registry says that it has failed, or answers what no registry does.
	Failed
	// Unauthorized: the registry wants other credentials.
	Unauthorized
	// NotFound: the registry has no such module, or does not show it.
	NotFound
	// DigestMismatch: the content is not the one that its digest names.
	DigestMismatch
	// NotModule: the content is not a CUE module.
	NotModule
	// TooLarge: the content exceeds a limit.
	TooLarge
	// Invalid: the reference or the configuration is wrong, and nothing was asked.
	Invalid
	// Unsigned: the registry has no signature of the content, and one is demanded.
	Unsigned
	// BadSignature: it has some, and none that is accepted.
	BadSignature
	// NotAllowed: the policy takes nothing from there, and nothing was asked.
	NotAllowed
)

// An Error is the error of a registry.
type Error struct {
	Code Code
	// Host is the registry, or "".
	Host string
	// Problem says what is wrong. It has no addresses and no text of a registry.
	Problem string
}

// Error returns the registry and the problem.
func (e *Error) Error() string {
	if e.Host == "" {
		return e.Problem
	}
	return "registry " + e.Host + ": " + e.Problem
}

// Transient reports whether the failure may pass by itself.
func (e *Error) Transient() bool {
	switch e.Code {
	case Unreachable, TimedOut, Failed:
		return true
	case Unauthorized, NotFound, DigestMismatch, NotModule, TooLarge, Invalid, Unsigned, BadSignature, NotAllowed:
		return false
	}
	panic(fmt.Sprintf("engine/registry: unknown code %d", e.Code))
}

// errorf returns an Error without a host; of adds it.
func errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Problem: fmt.Sprintf(format, args...)}
}

// of returns an error of a registry as an Error.
func of(host string, err error) *Error {
	if own, ok := errors.AsType[*Error](err); ok {
		out := *own
		if out.Code != Invalid && out.Code != NotAllowed {
			out.Host = host
		}
		return &out
	}
	status := 0
	if answer, ok := errors.AsType[ociregistry.HTTPError](err); ok {
		status = answer.StatusCode()
	}
	out := &Error{Host: host}
	if local, ok := errors.AsType[*fs.PathError](err); ok {
		return &Error{Code: Failed, Problem: "the cache of modules cannot be used: " + causeOf(local.Err)}
	}
	switch timeout, isNet := errors.AsType[net.Error](err); {
	case errors.Is(err, context.DeadlineExceeded), isNet && timeout.Timeout():
		out.Code, out.Problem = TimedOut, "it has not answered in time"
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		out.Code, out.Problem = Unauthorized, fmt.Sprintf("it refuses the credentials, or wants some (HTTP %d)", status)
	case status == http.StatusNotFound, errors.Is(err, modregistry.ErrNotFound):
		out.Code, out.Problem = NotFound, "it has no such module, or does not show it"
	case status != 0:
		out.Code, out.Problem = Failed, fmt.Sprintf("it has failed (HTTP %d)", status)
	case isNet, errors.Is(err, io.ErrUnexpectedEOF):
		out.Code, out.Problem = Unreachable, causeOf(err)
	default:
		out.Code, out.Problem = Failed, "it answers what no registry of modules does"
	}
	return out
}

// causeOf returns why there is no answer, in words that are the same each time.
func causeOf(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return "there is no host of this name"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "its certificate is not trusted"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "it does not speak TLS"
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	return "the connection has failed"
}
