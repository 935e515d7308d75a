package scaffold_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestTheStockLanguageServerLeadsFromANewPackageToTheContract: an editor with the language server of CUE goes to the definitions that a new package
// uses, and shows what is said of them, with no registry.
func TestTheStockLanguageServerLeadsFromANewPackageToTheContract(t *testing.T) {
	t.Parallel()
	dir := newModule(t)
	file := filepath.Join(dir, "greeter", "greeter.cue")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	server := startLanguageServer(t, dir)
	server.ask("initialize", map[string]any{"rootUri": "file://" + dir, "capabilities": map[string]any{},
		"workspaceFolders": []any{map[string]any{"uri": "file://" + dir, "name": "operators"}}})
	server.send(map[string]any{"method": "initialized", "params": map[string]any{}})
	server.send(map[string]any{"method": "textDocument/didOpen", "params": map[string]any{"textDocument": map[string]any{
		"uri": "file://" + file, "languageId": "cue", "version": 1, "text": string(text)}}})
	for name, row := range map[string]struct {
		reason, method string
		// at is a text of the file; the question is about its last character.
		at string
		// says is part of the answer.
		says string
	}{
		"the contract":               {"what a package may say is there", "textDocument/definition", "operator.#Controller", "cue.mod/pkg/operetta.dev/schemas/operator/"},
		"a type of Kubernetes":       {"its fields are there", "textDocument/definition", "appsv1.#Deployment", "cue.mod/pkg/operetta.dev/schemas/k8s/apps/v1/"},
		"a field of the spec":        {"its type is in the package itself", "textDocument/definition", "cr.spec.replicas", "greeter/greeter.cue"},
		"the comment of a reference": {"it says what the field is", "textDocument/hover", "cr.spec.replicas", "replicas"},
	} {
		line, column := positionOf(t, string(text), row.at)
		answer := server.ask(row.method, map[string]any{"textDocument": map[string]any{"uri": "file://" + file},
			"position": map[string]any{"line": line, "character": column}})
		if !strings.Contains(answer, row.says) {
			t.Errorf("%s (%s): the answer about %s does not say %q: %s", name, row.reason, row.at, row.says, answer)
		}
	}
}

// positionOf returns the line and the column, from 0, of the last character of a text in a file of ASCII.
func positionOf(t *testing.T, file, text string) (line, column int) {
	t.Helper()
	before, _, found := strings.Cut(file, text)
	if !found {
		t.Fatalf("there is no %q", text)
	}
	return strings.Count(before, "\n"), len(before) - strings.LastIndex(before, "\n") - 1 + len(text) - 1
}

// A languageServer is `cue lsp`, which talks JSON-RPC with headers as in the Language Server Protocol.
type languageServer struct {
	t    *testing.T
	in   io.Writer
	out  *bufio.Reader
	last int
}

func startLanguageServer(t *testing.T, dir string) *languageServer {
	t.Helper()
	found, err := exec.CommandContext(t.Context(), "go", "tool", "-n", "cue").Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), strings.TrimSpace(string(found)), "lsp")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CUE_REGISTRY=none", "CUE_CACHE_DIR="+t.TempDir())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	return &languageServer{t: t, in: in, out: bufio.NewReader(out)}
}

// send sends a message.
func (s *languageServer) send(message map[string]any) {
	s.t.Helper()
	message["jsonrpc"] = "2.0"
	text, err := json.Marshal(message)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(s.in, "Content-Length: %d\r\n\r\n%s", len(text), text); err != nil {
		s.t.Fatal(err)
	}
}

// ask sends a request, and returns the text of its result. What the server asks for meanwhile has no answer worth a name.
func (s *languageServer) ask(method string, params any) string {
	s.t.Helper()
	s.last++
	s.send(map[string]any{"id": s.last, "method": method, "params": params})
	for {
		m := s.receive()
		switch {
		case m.Method != "" && m.ID != nil:
			s.send(map[string]any{"id": m.ID, "result": nil})
		case m.Method == "" && string(m.ID) == strconv.Itoa(s.last):
			if m.Error != nil {
				s.t.Fatalf("%s: %s", method, m.Error)
			}
			return string(m.Result)
		}
	}
}

// A message is one of the server: a request, a notice or an answer.
type message struct {
	ID            json.RawMessage
	Method        string
	Result, Error json.RawMessage
}

func (s *languageServer) receive() message {
	s.t.Helper()
	header, err := textproto.NewReader(s.out).ReadMIMEHeader()
	if err != nil {
		s.t.Fatal(err)
	}
	n, err := strconv.Atoi(header.Get("Content-Length"))
	if err != nil {
		s.t.Fatal(err)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(s.out, text); err != nil {
		s.t.Fatal(err)
	}
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		s.t.Fatal(err)
	}
	return m
}
