// A request's curl command, for the person's shell. Each shell quotes arguments differently.

/** The shells, as value and words. */
export const SHELLS = [["bash", "bash"], ["powershell", "PowerShell"], ["cmd", "cmd"]];

/** The longest command that cmd.exe accepts, in characters. */
const LONGEST_IN_CMD = 8191;

const forBash = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** PowerShell also ends a text at typographic quotes. */
const forPowerShell = (text) => `'${text.replace(/['‘’‚‛]/g, "$&$&")}'`;

/**
 * For cmd.exe, a caret makes each special character an ordinary one, including the quotes. The program then reads the
 * quotes; for it, a backslash is special only before a quote
 * (https://learn.microsoft.com/cpp/c-language/parsing-c-command-line-arguments).
 */
function forCmd(text) {
  const argument = text.replace(/(\\*)"/g, '$1$1\\"').replace(/\\+$/, "$&$&");
  return `"${argument}"`.replace(/[()%!^"<>&|]/g, "^$&").replace(/\r?\n/g, "^\n\n");
}

/** Without `--globoff`, curl would read brackets and braces in an address as a range of addresses. */
const command = (program, quoted, continued, { url, headers }, data) => [
  `${program} --globoff -i -X POST ${quoted(url)}`,
  ...headers.map((header) => `  -H ${quoted(header)}`),
  `  --data-binary ${data}`,
].join(` ${continued}\n`);

const COMMANDS = {
  bash: (request) => command("curl", forBash, "\\", request, forBash(request.body)),
  cmd: (request) => command("curl", forCmd, "^", request, forCmd(request.body)),
  // PowerShell versions differ in how they pass quotes within an argument, so the body is in a file.
  powershell: (request) => [
    "$body = [IO.Path]::GetTempFileName()",
    `[IO.File]::WriteAllText($body, ${forPowerShell(request.body)})`,
    command("curl.exe", forPowerShell, "`", request, '"@$body"'),
    "Remove-Item $body",
  ].join("\n"),
};

/** The command that posts the body to the address; `headers` are lines such as `name: value`. */
export const curlFor = (shell, request) => COMMANDS[shell](request);

/** Whether the shell accepts a command of this length. */
export const accepts = (shell, { length }) => shell !== "cmd" || length <= LONGEST_IN_CMD;
