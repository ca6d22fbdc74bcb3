// Asks the policy hook about everything that OpenCode's agent is to do. The line above this file's text names
// the hook's command as ASKING. The configuration denies every tool; that is lifted here, so that an OpenCode
// which does not load this file, or loads only half of it, uses no tool at all.
import { spawnSync } from "node:child_process"

const ask = (question) => {
  const run = spawnSync(ASKING.program, ASKING.arguments, {
    input: JSON.stringify(question),
    encoding: "utf8",
    timeout: 60_000,
    maxBuffer: 1 << 20,
  })
  if (run.status !== 0) return { refused: (run.status === 2 && run.stderr) || ASKING.unanswered }
  if (!run.stdout.trim()) return {}
  const said = JSON.parse(run.stdout).hookSpecificOutput ?? {}
  return {
    refused: said.permissionDecision === "deny" ? said.permissionDecisionReason : undefined,
    context: said.additionalContext,
  }
}

export default async ({ directory }) => ({
  config: async (config) => {
    config.permission = "allow"
  },
  "tool.execute.before": async (use, { args }) => {
    const { refused } = ask({ hook_event_name: "PreToolUse", tool_name: use.tool, tool_input: args, cwd: directory })
    if (refused) throw new Error(refused)
  },
  "tool.execute.after": async (use) => {
    ask({ hook_event_name: "PostToolUse", tool_name: use.tool })
  },
  event: async ({ event }) => {
    if (event.type === "session.created") ask({ hook_event_name: "SessionStart", source: "startup" })
  },
  "experimental.session.compacting": async (_, output) => {
    const { context } = ask({ hook_event_name: "SessionStart", source: "compact" })
    if (context) output.context.push(context)
  },
})
