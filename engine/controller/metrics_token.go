package controller

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
)

// The bounds of the token in a file, in bytes. A shorter one could be guessed.
const (
	minMetricsToken = 16
	maxMetricsToken = 4 << 10
)

// readMetricsToken reads the token by which metrics may be read. It errors if there is none, or one that could
// be guessed.
func readMetricsToken(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxMetricsToken+1))
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < minMetricsToken || len(text) > maxMetricsToken {
		return "", errors.New("the token in " + file + " has less than 16 bytes, or more than 4096")
	}
	return token, nil
}

// withToken lets those read metrics who have the token in a file. The file is read for each request, because a
// Secret that is mounted changes without a restart.
func withToken(file string, log logr.Logger, handler http.Handler) http.Handler {
	sometimes := &rate.Sometimes{Interval: refusalInterval}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := readMetricsToken(file)
		if err != nil {
			sometimes.Do(func() { log.Error(err, "requests for metrics are refused") })
			http.Error(w, "the server has no token", http.StatusInternalServerError)
			return
		}
		given, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		// Digests have one length, so that the comparison takes one time.
		want, got := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(given))
		if !is || subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "send the token of the metrics", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	})
}
