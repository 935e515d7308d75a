package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestARegistryServesThoseWhoHaveItsCredentialsUntilItEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, writer, "demo", "opened") }()
	host, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	host = strings.TrimSpace(host)
	if !strings.HasPrefix(host, "127.0.0.1:") {
		t.Errorf("it listens at %s, where others may reach it", host)
	}
	ask := func(user, password string) (int, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+"/v2/", nil)
		if err != nil {
			return 0, err
		}
		if user != "" {
			request.SetBasicAuth(user, password)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}
	for _, c := range []struct {
		user, password string
		want           int
		reason         string
	}{
		{"demo", "opened", http.StatusOK, "these are the credentials"},
		{"", "", http.StatusUnauthorized, "there are none"},
		{"demo", "", http.StatusUnauthorized, "the password is missing"},
		{"demo", "opened ", http.StatusUnauthorized, "the password is another"},
		{"Demo", "opened", http.StatusUnauthorized, "the user is another"},
	} {
		if got, err := ask(c.user, c.password); err != nil || got != c.want {
			t.Errorf("%q with %q: %d, %v, want %d: %s", c.user, c.password, got, err, c.want, c.reason)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ends with %v", err)
	}
	if code, err := ask("demo", "opened"); err == nil {
		t.Errorf("it answers %d although it has ended", code)
	}
}

func TestARegistryWithoutCredentialsDoesNotStart(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{{"", ""}, {"demo", ""}, {"", "opened"}} {
		if err := run(t.Context(), io.Discard, c[0], c[1]); err == nil {
			t.Errorf("it serves with user %q and password %q", c[0], c[1])
		}
	}
}
