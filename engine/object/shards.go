package object

import (
	"fmt"
	"regexp"
	"strconv"
)

// MaxShards is how many shards an operator has at most. Its roles name the Lease of each.
const MaxShards = 32

// SharedLease returns the name of the Lease in which the processes of an operator agree on how many shards there are. The
// operator's Lease has the given name.
func SharedLease(of string) string { return of + "-shards" }

// ShardLease returns the name of the Lease of a shard. That of shard 0 is the one of an operator without shards.
func ShardLease(of string, shard int) string {
	if shard == 0 {
		return of
	}
	return of + "-shard-" + strconv.Itoa(shard)
}

// derivedLease matches the names of the Leases that belong to the Lease of some other name.
var derivedLease = regexp.MustCompile(`-(shards|shard-[0-9]+)$`)

// CheckLease errors if an operator's Lease cannot have a name, because it could be one of those of the shards of another operator.
func CheckLease(name string) error {
	if derived := derivedLease.FindString(name); derived != "" {
		return fmt.Errorf("%q cannot be the name of a Lease of an operator, because operator %q would have it for its shards", name, name[:len(name)-len(derived)])
	}
	return nil
}

// ShardLeases returns the names of the Leases of all shards that there may be: a process that changes the number of
// shards takes the Leases of the old ones.
func ShardLeases(of string) []string {
	out := make([]string, MaxShards)
	for i := range out {
		out[i] = ShardLease(of, i)
	}
	return out
}
