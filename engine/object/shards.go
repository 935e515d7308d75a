package object

import "strconv"

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
	return of + "-" + strconv.Itoa(shard)
}

// ShardLeases returns the names of the Leases of all shards that there may be: who changes their number takes those of before.
func ShardLeases(of string) []string {
	out := make([]string, MaxShards)
	for i := range out {
		out[i] = ShardLease(of, i)
	}
	return out
}
