package controlplane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const ownerEnv = "OPERETTA_TEST_PLAY_OWNER"

// runAsOwner starts a control plane, says where, and waits to be killed.
func runAsOwner() {
	c, err := Start(context.Background(), Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(c.Dir(), c.keeper.cmd.Process.Pid)
	fmt.Println(c.Wait(context.Background()))
	os.Exit(0)
}

// owner is another process with a control plane.
type owner struct {
	cmd    *exec.Cmd
	dir    string
	keeper int
}

func startOwner(t *testing.T) owner {
	t.Helper()
	o := owner{cmd: exec.Command(os.Args[0])}
	o.cmd.Env = append(os.Environ(), ownerEnv+"=1")
	o.cmd.Stderr = os.Stderr
	stdout, err := o.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// It may have ended already, and that it was killed is what Wait reports.
		_ = o.cmd.Process.Kill()
		_ = o.cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal("the owner did not start: ", err)
	}
	if _, err := fmt.Sscan(line, &o.dir, &o.keeper); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestKilledOwnerLeavesNothing(t *testing.T) {
	t.Parallel()
	o := startOwner(t)
	if got := len(processes(t, o.dir, o.keeper)); got != len(Parts())+1 {
		t.Fatalf("%d processes before", got)
	}
	if err := o.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	expectNothingLeft(t, o.dir, o.keeper)
}

func TestKilledKeeperTakesItsPartsWithIt(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux signals the end of a parent")
	}
	c := start(t, Options{})
	pid := c.keeper.cmd.Process.Pid
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "keeper") {
		t.Errorf("wait: %v", err)
	}
	if err := c.Stop(); err == nil {
		t.Error("stop does not tell that the keeper was killed")
	}
	expectNothingLeft(t, c.Dir(), pid)
	// The cleanup of start would report the killed keeper again.
	c.keeper.err = nil
}

// processes are the living ones that have dir in their arguments, and keeper.
func processes(t *testing.T, dir string, keeper int) []string {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-ww", "-o", "pid=,stat=,args=").Output()
	if err != nil {
		t.Fatal("list processes: ", err)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if strings.HasPrefix(fields[1], "Z") {
			continue // has ended; whoever adopted it has not asked how
		}
		if fields[0] == strconv.Itoa(keeper) || strings.Contains(line, dir) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

func expectNothingLeft(t *testing.T, dir string, keeper int) {
	t.Helper()
	eventually(t, func() error {
		if left := processes(t, dir, keeper); len(left) > 0 {
			return fmt.Errorf("still running:\n%s", strings.Join(left, "\n"))
		}
		_, err := os.Stat(dir)
		switch {
		case err == nil:
			return fmt.Errorf("folder %s is still there", dir)
		case errors.Is(err, os.ErrNotExist):
			return nil
		}
		return err
	})
}

// listen takes a port for as long as the test lasts.
func listen(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}
